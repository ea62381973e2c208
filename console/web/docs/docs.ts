// The page of the API's reference. The viewer, RapiDoc, is an element of its own; this script
// gives it the colors that the visitor prefers, and the console's session for trying requests.

import "./docs.css";

const viewer = document.querySelector("rapi-doc")!;

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => {
  viewer.setAttribute("theme", dark.matches ? "dark" : "light");
  viewer.setAttribute("primary-color", dark.matches ? "#8f97f5" : "#4650c8");
};
dark.addEventListener("change", paint);
paint();

// RapiDoc takes ten times as long, seconds, to resolve the references of a description that says it is
// of OpenAPI 3.1. It shows the same for one that says 3.0: what 3.1 adds to schemas it knows anyway.
const load = async () => {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error(`/openapi.json is answered with ${answer.status}.`);
  const description = { ...((await answer.json()) as object), openapi: "3.0.3" };
  await (viewer as HTMLElement & { loadSpec(description: object): Promise<void> }).loadSpec(description);
};
load().catch((error: unknown) => viewer.replaceWith(`The reference can't be shown: ${error}`));

// Somebody who is signed in to the console may try requests without typing a token. A token
// that is typed wins over the session.
viewer.addEventListener("before-try", (event) => {
  const request = (event as CustomEvent<{ request: { headers: Headers } }>).detail.request;
  if (!request.headers.has("Authorization")) request.headers.set("X-Switchyard-Console", "1");
});
