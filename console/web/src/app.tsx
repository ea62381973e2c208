// The application: it finds the session, and the workspace and page of the address, and
// puts the page into its frame.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, asFailure, type Failure } from "./api";
import { KeyHelp } from "./keys";
import { Layout } from "./layout";
import { follow } from "./live";
import { pages, type PageRoute } from "./pages";
import { SignIn, SignInAgain } from "./pages/sign_in";
import { Start } from "./pages/start";
import { Params, matchPath, useRoute } from "./router";
import { loadSession, useExpired, useSession, useUnreachable, type Session } from "./session";
import { ConflictHost } from "./ui/conflict";
import { ConfirmHost } from "./ui/dialog";
import { LinkButton } from "./ui/button";
import { Page } from "./ui/page";
import { Empty, ErrorPanel, Spinner } from "./ui/states";
import { Toasts } from "./ui/toast";
import { WorkspaceContext, enter, type Workspace } from "./workspace";

export function App() {
  const session = useSession();
  const expired = useExpired();
  const unreachable = useUnreachable();
  return (
    <>
      {session ? <SignedIn session={session} /> : session === null ? <SignIn /> : unreachable ? <Unreachable failure={unreachable} /> : <Spinner label="Loading the console" />}
      {expired && session && <SignInAgain session={session} />}
      <ConfirmHost />
      <ConflictHost />
      <KeyHelp />
      <Toasts />
    </>
  );
}

function Unreachable({ failure }: { failure: Failure }) {
  return (
    <main class="center">
      <h1>Switchyard</h1>
      <ErrorPanel error={failure} retry={() => void loadSession()} />
    </main>
  );
}

function match(path: string): { page: PageRoute; params: Record<string, string> } | null {
  for (const page of pages) {
    const params = matchPath(page.path, path);
    if (params) return { page, params };
  }
  return null;
}

function SignedIn({ session }: { session: Session }) {
  const { path } = useRoute();
  const found = match(path);
  const slug = found?.params.slug ?? null;
  const { workspace, failure, retry } = useNamedWorkspace(session, slug);

  // A page without a workspace of its own, as that of the cluster, keeps the last one in the frame.
  const shown = workspace ?? (slug === null ? lastWorkspace(session) : null);
  // This happens before the page renders, because its first effects send requests.
  if (shown !== null || slug !== null) enter(shown);
  useEffect(() => {
    if (shown) follow(shown.id);
    if (workspace) remember(workspace.slug);
  }, [shown?.id, workspace?.id]);

  return (
    <WorkspaceContext.Provider value={shown}>
      <Params.Provider value={found?.params ?? noParams}>
        <Layout session={session} workspace={shown} page={found?.page ?? null}>
          {failure ? (
            <Page title="Workspace">
              <ErrorPanel error={failure} retry={retry} />
            </Page>
          ) : found ? (
            slug !== null && workspace === null ? (
              <Spinner />
            ) : (
              <Loaded key={found.page.path + (workspace?.id ?? "")} page={found.page} />
            )
          ) : path === "/console/" || path === "/console" ? (
            <Start session={session} last={lastWorkspace(session)} />
          ) : (
            <Page title="Not found">
              <Empty title="There is no such page.">
                <LinkButton href="/console/">Go to the start</LinkButton>
              </Empty>
            </Page>
          )}
        </Layout>
      </Params.Provider>
    </WorkspaceContext.Provider>
  );
}

const noParams: Record<string, string> = {};

/** Finds the workspace that the address names: in the session, or for the operator by asking. */
function useNamedWorkspace(session: Session, slug: string | null) {
  const known = slug === null ? null : (session.workspaces.find((w) => w.slug === slug) ?? null);
  const [asked, setAsked] = useState<{ slug: string; workspace: Workspace | null; failure: Failure | null } | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (slug === null || known) return;
    const control = new AbortController();
    api.get<Workspace>(`/workspaces/slug/${encodeURIComponent(slug)}`, undefined, control.signal).then(
      (workspace) => setAsked({ slug, workspace, failure: null }),
      (error) => control.signal.aborted || setAsked({ slug, workspace: null, failure: asFailure(error) }),
    );
    return () => control.abort();
  }, [slug, known?.id, turn]);
  const answer = asked && asked.slug === slug ? asked : null;
  return { workspace: known ?? answer?.workspace ?? null, failure: known ? null : (answer?.failure ?? null), retry: () => setTurn(turn + 1) };
}

const lastKey = "switchyard.workspace";

function remember(slug: string): void {
  try {
    localStorage.setItem(lastKey, slug);
  } catch {
    // Without storage the start page lists the workspaces.
  }
}

function lastWorkspace(session: Session): Workspace | null {
  let slug: string | null = null;
  try {
    slug = localStorage.getItem(lastKey);
  } catch {
    slug = null;
  }
  return session.workspaces.find((w) => w.slug === slug) ?? (session.workspaces.length === 1 ? session.workspaces[0]! : null);
}

const loaded = new Map<string, ComponentType<any>>();

/** A page. Its code is loaded when it is opened first. */
function Loaded({ page }: { page: PageRoute }) {
  const [, render] = useState(0);
  const [failure, setFailure] = useState<Failure | null>(null);
  const Component = loaded.get(page.path);
  const load = () => {
    setFailure(null);
    page.load().then(
      (module) => {
        loaded.set(page.path, module.default);
        render((n) => n + 1);
      },
      (error) => setFailure(asFailure(error)),
    );
  };
  useEffect(() => {
    if (!Component) load();
  }, []);
  if (failure) {
    return (
      <Page title={page.title}>
        <ErrorPanel error={failure} retry={() => location.reload()} />
      </Page>
    );
  }
  return <div class="page-box">{Component ? <Component /> : <Spinner />}</div>;
}
