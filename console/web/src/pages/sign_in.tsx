// Signing in: with the identity provider, by pasting a token, or by making a workspace on
// a server that lets everybody make one.

import { useState } from "preact/hooks";
import { api, asFailure, Failure } from "../api";
import { navigate } from "../router";
import { signIn, signInAddress, signOut, useOidc, type Session } from "../session";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Field, TextInput } from "../ui/field";
import { Icon } from "../ui/icons";
import { ErrorPanel } from "../ui/states";
import { Tabs } from "../ui/tabs";
import { toast } from "../ui/toast";

function here(): string {
  return location.pathname + location.search;
}

function TokenForm({ button }: { button: string }) {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const submit = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await signIn(token);
    } catch (error) {
      const why = asFailure(error);
      // The hint of the API is about requests; people have a token in hand.
      if (why.status === 401) setFailure(new Failure(401, why.code, "The service does not know this token.", "Copy it again, the whole of it. One that was deleted or has ended does not work: ask an admin for another.", why.details));
      else setFailure(why);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Field label="Token" hint="A workspace token, or the operator's. It is used once, to open a session, and is not kept in the browser.">
        <TextInput type="password" name="token" value={token} onInput={setToken} autocomplete="off" spellcheck={false} data-autofocus required />
      </Field>
      {failure && <ErrorPanel error={failure} />}
      <Button kind="primary" type="submit" busy={busy} disabled={token.trim() === ""}>
        {button}
      </Button>
    </form>
  );
}

function Provider({ to }: { to: string }) {
  const oidc = useOidc();
  if (!oidc) return null;
  return (
    <div class="sign-in-provider">
      <a class="button button-primary" href={signInAddress(to)}>
        <Icon name="key" /> Sign in with your organization
      </a>
      <p class="divider">or with a token</p>
    </div>
  );
}

/** Why a sign-in with the identity provider has failed, by the code in the address. */
const refusals: Record<string, string> = {
  "sign-in-expired": "The sign-in took too long, or another one has replaced it. Sign in again.",
  "sign-in-refused": "The identity provider did not confirm who you are. Sign in again, or ask the operator to look at the server's log.",
  "sign-in-unknown": "No member of the workspace has your verified address. Ask an admin of the workspace to add you as a member with that address.",
  "sign-in-several": "Your workspace is not known yet. Open its own address, /console/ with its short name and /issues, and sign in there.",
  "sign-in-often": "There were too many sign-ins from your address. Wait a minute, then sign in again.",
  "sign-in-unavailable": "The identity provider or the workspace did not answer. Try again in a moment.",
};

export function SignIn() {
  const [tab, setTab] = useState("token");
  const refused = refusals[new URLSearchParams(location.search).get("error") ?? ""];
  return (
    <main class="center">
      <div class="sign-in">
        <h1>Switchyard</h1>
        {refused && (
          <div class="error-panel" role="alert">
            <Icon name="warning" />
            <p class="grow">{refused}</p>
          </div>
        )}
        <Tabs
          label="Ways to begin"
          tabs={[
            { key: "token", title: "Sign in" },
            { key: "new", title: "New workspace" },
          ]}
          active={tab}
          onChange={setTab}
        >
          {tab === "token" ? (
            <>
              <Provider to={here()} />
              <TokenForm button="Sign in" />
            </>
          ) : (
            <NewWorkspace />
          )}
        </Tabs>
      </div>
    </main>
  );
}

/** The dialog over a page after the end of its session. The page and typed texts stay below it. */
export function SignInAgain({ session }: { session: Session }) {
  return (
    <Dialog title="Your session has ended" required onClose={() => undefined} footer={<Button onClick={() => void signOut().catch(() => location.assign("/console/"))}>Leave this page</Button>}>
      <p>Sign in again to go on. The page stays as it is, and nothing you typed is lost.</p>
      {session.signIn?.oidc && <Provider to={here()} />}
      <TokenForm button="Sign in again" />
    </Dialog>
  );
}

interface Onboarded {
  workspace: { id: string; slug: string; name: string };
  token: { token: string };
}

function slugOf(name: string): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 64);
}

function NewWorkspace() {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [made, setMade] = useState<Onboarded | null>(null);
  const wanted = slug ?? slugOf(name);

  const submit = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const { data } = await api.send<Onboarded>("POST", "/workspaces/onboard", { name: name.trim(), slug: wanted });
      setMade(data);
    } catch (error) {
      const why = asFailure(error);
      if (why.status === 401 || why.status === 403) why.hint = "On this server the operator makes workspaces. Ask for one, and for a token.";
      setFailure(why);
    } finally {
      setBusy(false);
    }
  };

  const begin = async () => {
    setBusy(true);
    try {
      history.replaceState(null, "", "/console/");
      await signIn(made!.token.token);
      navigate(`/console/${made!.workspace.slug}/issues`);
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setBusy(false);
    }
  };

  if (made) {
    return (
      <div class="stack">
        <p>
          The workspace <strong>{made.workspace.name}</strong> is there. This is its admin token. It is shown this once: keep it in a safe place.
        </p>
        <Field label="Admin token">
          <TextInput value={made.token.token} onInput={() => undefined} readOnly class="mono" onFocus={(event) => event.currentTarget.select()} />
        </Field>
        {failure && <ErrorPanel error={failure} retry={() => void begin()} />}
        <div class="row">
          <Button
            icon="copy"
            onClick={() => {
              navigator.clipboard?.writeText(made.token.token).then(
                () => toast("Copied."),
                () => toast("Copy it by hand.", { kind: "error" }),
              );
            }}
          >
            Copy
          </Button>
          <Button kind="primary" busy={busy} onClick={() => void begin()}>
            Open the workspace
          </Button>
        </div>
      </div>
    );
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <Field label="Name">
        <TextInput name="name" value={name} onInput={setName} maxLength={200} required autocomplete="organization" />
      </Field>
      <Field label="Address" hint={`Pages are at /console/${wanted || "…"}/. Small letters, digits and dashes.`}>
        <TextInput name="slug" value={wanted} onInput={setSlug} pattern="[a-z0-9\-]{1,64}" required autocomplete="off" />
      </Field>
      {failure && <ErrorPanel error={failure} />}
      <Button kind="primary" type="submit" busy={busy} disabled={name.trim() === "" || wanted === ""}>
        Make the workspace
      </Button>
    </form>
  );
}
