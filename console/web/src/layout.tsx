// The frame around each page: sidebar, workspace and account menus, state of the connection.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { showKeys, useKeys, type KeyMap } from "./keys";
import { useConnection } from "./live";
import { pages, type PageRoute, type SectionName } from "./pages";
import { QuickCreate, openQuickCreate } from "./pages/work/quick_create";
import { A, navigate, useRoute } from "./router";
import { signOut, type Session } from "./session";
import { applyTheme, useTheme } from "./theme";
import { Button, IconButton } from "./ui/button";
import { confirm } from "./ui/dialog";
import { Icon } from "./ui/icons";
import { Avatar } from "./ui/marks";
import { Menu, type MenuItem } from "./ui/menu";
import { toastFailure } from "./ui/toast";
import type { Workspace } from "./workspace";

const sections: SectionName[] = ["Work", "Agents", "Workspace", "Operator"];

interface LayoutProps {
  session: Session;
  workspace: Workspace | null;
  page: PageRoute | null;
  children: ComponentChildren;
}

function addressOf(page: PageRoute, workspace: Workspace | null): string | null {
  if (!page.path.includes(":slug")) return page.path;
  return workspace ? page.path.replace(":slug", workspace.slug) : null;
}

export function Layout({ session, workspace, page, children }: LayoutProps) {
  const { path } = useRoute();
  const [open, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);

  useEffect(() => {
    setOpen(false);
    // Readers of the screen hear the new page; the first page keeps the browser's own place.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [path]);

  const shown = pages.filter((p) => p.nav && (!p.nav.root || session.kind === "root"));
  const keys: KeyMap = {};
  for (const p of shown) {
    const to = addressOf(p, workspace);
    if (p.nav!.keys && to) keys[p.nav!.keys] = { help: "Go to " + p.title, run: () => navigate(to) };
  }
  if (workspace) {
    keys["c"] = { help: "Create an issue", run: () => openQuickCreate() };
    keys["/"] = { help: "Search", run: () => navigate(`/console/${workspace.slug}/search`) };
  }
  useKeys("Everywhere", keys);

  return (
    <div class="layout">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top-bar">
        <IconButton label="Menu" icon="menu" aria-expanded={open} aria-controls="sidebar" onClick={() => setOpen(!open)} />
        <span class="brand">Switchyard</span>
        <ConnectionMark />
      </header>
      {open && <div class="shade" onClick={() => setOpen(false)} />}
      <nav id="sidebar" class={open ? "sidebar sidebar-open" : "sidebar"} aria-label="Main" onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
        <WorkspaceMenu session={session} workspace={workspace} />
        {workspace && (
          <div class="sidebar-create">
            <Button kind="primary" icon="plus" onClick={() => openQuickCreate()} title="Create an issue (c)">
              New issue
            </Button>
          </div>
        )}
        <div class="sidebar-links">
          {sections.map((section) => {
            const links = shown.filter((p) => p.nav!.section === section).flatMap((p) => {
              const to = addressOf(p, workspace);
              return to ? [{ page: p, to }] : [];
            });
            if (links.length === 0) return null;
            return (
              <SidebarSection key={section} title={section} folded={section === "Workspace"} current={links.some(({ page: p }) => isCurrent(p, page))}>
                <ul>
                  {links.map(({ page: p, to }) => (
                    <li key={p.path}>
                      <A href={to} class="sidebar-link" aria-current={isCurrent(p, page) ? "page" : undefined} title={p.nav!.keys ? `${p.title} (${p.nav!.keys})` : undefined}>
                        <Icon name={p.nav!.icon} />
                        {p.title}
                      </A>
                    </li>
                  ))}
                </ul>
              </SidebarSection>
            );
          })}
        </div>
        <div class="sidebar-foot">
          <ConnectionMark />
          <AccountMenu session={session} />
        </div>
      </nav>
      <main id="main" class="main" tabIndex={-1} ref={main}>
        {children}
      </main>
      {workspace && <QuickCreate key={workspace.id} />}
    </div>
  );
}

/** A section of the sidebar. A long one that is seldom used is folded until its title is pressed. */
function SidebarSection({ title, folded, current, children }: { title: string; folded: boolean; current: boolean; children: ComponentChildren }) {
  const [open, setOpen] = useState(!folded);
  const shown = open || current;
  const id = "section-" + title.toLowerCase();
  return (
    <div class="sidebar-section">
      <h2 class="sidebar-title">
        {folded ? (
          <button type="button" class="sidebar-fold" aria-expanded={shown} aria-controls={id} onClick={() => setOpen(!open)}>
            {title}
            <Icon name={shown ? "down" : "right"} size={12} />
          </button>
        ) : (
          title
        )}
      </h2>
      <div id={id}>{shown && children}</div>
    </div>
  );
}

function isCurrent(p: PageRoute, page: PageRoute | null): boolean {
  if (!page) return false;
  if (p === page) return true;
  // A page of one thing belongs to the list before it.
  return page.nav === undefined && page.path.startsWith(p.path + "/");
}

function ConnectionMark() {
  const connection = useConnection();
  const words = { live: "Live", connecting: "Connecting", lost: "Connection lost" }[connection];
  return (
    <span class={`connection connection-${connection}`} role="status" title={connection === "lost" ? "The page shows its last state and goes on as soon as the server answers." : undefined}>
      <span class="connection-dot" aria-hidden="true" />
      {words}
    </span>
  );
}

function WorkspaceMenu({ session, workspace }: { session: Session; workspace: Workspace | null }) {
  const items: MenuItem[] = session.workspaces.slice(0, 50).map((w) => ({ label: w.name, hint: w.slug === workspace?.slug ? "now" : undefined, onSelect: () => navigate(`/console/${w.slug}/issues`) }));
  items.push({ label: "All workspaces", icon: "list", onSelect: () => navigate("/console/?choose=1") });
  return (
    <Menu label={workspace ? `Workspace: ${workspace.name}` : "Switchyard: choose a workspace"} items={items} class="workspace-menu">
      <span class="workspace-mark" aria-hidden="true" data-letters={(workspace?.name ?? "S").slice(0, 1).toUpperCase()} />
      <span class="grow clip">{workspace?.name ?? "Switchyard"}</span>
      <Icon name="down" size={12} />
    </Menu>
  );
}

function AccountMenu({ session }: { session: Session }) {
  const theme = useTheme();
  const name = session.kind === "root" ? "Operator" : (session.name ?? session.email ?? "Member " + session.actorId.slice(-4));
  const leave = async (everywhere: boolean) => {
    if (everywhere && !(await confirm({ title: "Sign out everywhere?", text: "All your console sessions end, on every device.", action: "Sign out everywhere" }))) return;
    signOut(everywhere).catch((error) => toastFailure(error, () => void leave(everywhere)));
  };
  const items: MenuItem[] = [
    { label: theme === "light" ? "Light theme (now)" : "Light theme", icon: "sun", onSelect: () => applyTheme("light") },
    { label: theme === "dark" ? "Dark theme (now)" : "Dark theme", icon: "moon", onSelect: () => applyTheme("dark") },
    { label: theme === "system" ? "System theme (now)" : "System theme", icon: "settings", onSelect: () => applyTheme("system") },
    { label: "Keys", icon: "list", hint: "?", onSelect: showKeys },
    { label: "API reference", icon: "file", onSelect: () => location.assign("/docs") },
    { label: "Sign out", icon: "out", onSelect: () => void leave(false) },
    { label: "Sign out everywhere", icon: "out", onSelect: () => void leave(true) },
  ];
  return (
    <Menu label={`Account: ${name}`} items={items} class="account-menu">
      <Avatar id={session.actorId ?? "root"} name={name} agent={session.actorType === "agent"} size={24} />
      <span class="grow clip">{name}</span>
      <Icon name="more" />
    </Menu>
  );
}
