// Turns Markdown into sanitized nodes: marked parses it, DOMPurify takes out everything
// that could run, load or frame something.

import DOMPurify from "dompurify";
import { Marked } from "marked";
import { consoleHeader } from "../api";
import { wsPath } from "../workspace";

/**
 * HTML in the text is shown as it was typed. The sanitizer would take it apart in any case,
 * but the browser reports each event handler in it to the Content-Security-Policy first.
 */
const markdown = new Marked({ async: false, gfm: true, breaks: true, tokenizer: { html: () => undefined, tag: () => undefined } });

const purifyOptions = {
  USE_PROFILES: { html: true },
  FORBID_TAGS: ["style", "form", "button", "select", "textarea", "option", "video", "audio", "source", "track", "picture", "map", "area", "dialog", "iframe", "object", "embed", "link", "meta", "base", "font", "center", "marquee"],
  FORBID_ATTR: ["style", "id", "name", "class", "srcset", "target", "tabindex", "accesskey", "role", "contenteditable", "autofocus", "popover", "slot"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true as const,
};

/** Headings inside a page come below the page's own, and skip no level. */
function settleHeadings(root: DocumentFragment): void {
  let depth = 2;
  const open: number[] = [];
  for (const heading of root.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const level = Number(heading.tagName[1]);
    while (open.length > 0 && open[open.length - 1]! >= level) open.pop();
    open.push(level);
    depth = Math.min(6, 2 + open.length);
    const next = document.createElement("h" + depth);
    next.append(...heading.childNodes);
    heading.replaceWith(next);
  }
}

function settleLinks(root: DocumentFragment): void {
  for (const link of root.querySelectorAll("a")) {
    const href = link.getAttribute("href");
    if (href === null) continue;
    let to: URL;
    try {
      to = new URL(href, location.href);
    } catch {
      link.removeAttribute("href");
      continue;
    }
    if (to.origin === location.origin) continue;
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
}

/** Shows an attachment of the workspace: it is read with the console's header. */
async function showAttachment(image: HTMLImageElement, path: string): Promise<void> {
  const answer = await fetch(path, { headers: consoleHeader, credentials: "same-origin" });
  if (!answer.ok) throw new Error("read an attachment: status " + answer.status);
  const content = await answer.blob();
  await new Promise<void>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve();
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(content);
    reader.addEventListener("load", () => (image.src = reader.result as string));
  });
}

/** The page may load images of its own server alone. Others are shown as links. */
function settleImages(root: DocumentFragment): void {
  for (const image of root.querySelectorAll("img")) {
    const src = image.getAttribute("src") ?? "";
    const alt = image.getAttribute("alt") || "Image";
    let to: URL | null = null;
    try {
      to = new URL(src, location.href);
    } catch {
      to = null;
    }
    if (to && to.pathname.startsWith(wsPath("/attachments/"))) {
      const shown = document.createElement("img");
      shown.alt = alt;
      image.replaceWith(shown);
      showAttachment(shown, to.pathname).catch(() => shown.replaceWith(alt));
    } else if (to && (to.protocol === "http:" || to.protocol === "https:")) {
      const link = document.createElement("a");
      link.href = to.href;
      link.textContent = alt;
      image.replaceWith(link);
    } else {
      image.replaceWith(alt);
    }
  }
}

function settleBoxes(root: DocumentFragment): void {
  for (const input of root.querySelectorAll("input")) {
    const checked = input.getAttribute("type") === "checkbox" && input.hasAttribute("checked");
    input.replaceWith(checked ? "☑ " : "☐ ");
  }
  for (const box of root.querySelectorAll("pre")) box.tabIndex = 0;
  for (const table of root.querySelectorAll("table")) {
    const box = document.createElement("div");
    box.className = "markdown-table";
    box.tabIndex = 0;
    table.replaceWith(box);
    box.append(table);
  }
}

export function renderMarkdown(text: string): DocumentFragment {
  const html = markdown.parse(text) as string;
  const root = DOMPurify.sanitize(html, purifyOptions) as unknown as DocumentFragment;
  settleHeadings(root);
  settleImages(root);
  settleLinks(root);
  settleBoxes(root);
  return root;
}
