// Markdown as elements. The parser and the sanitizer are loaded when the first text is shown.

import { useEffect, useRef, useState } from "preact/hooks";

type Render = (text: string) => DocumentFragment;

let render: Render | null = null;
let loading: Promise<void> | null = null;

function load(): Promise<void> {
  loading ??= import("./markdown_render").then(
    (module) => {
      render = module.renderMarkdown;
    },
    (error) => {
      loading = null;
      throw error;
    },
  );
  return loading;
}

export function Markdown({ text }: { text: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [ready, setReady] = useState(render !== null);
  useEffect(() => {
    if (ready) return;
    let gone = false;
    load().then(
      () => gone || setReady(true),
      () => undefined, // The plain text stays.
    );
    return () => {
      gone = true;
    };
  }, [ready]);
  useEffect(() => {
    if (ready && render) box.current?.replaceChildren(render(text));
  }, [ready, text]);
  // Preact owns the outer element only: it never touches children that it did not make.
  return ready ? <div key="html" class="markdown" ref={box} /> : <div key="text" class="markdown markdown-plain">{text}</div>;
}
