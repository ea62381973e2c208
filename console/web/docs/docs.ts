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

// Somebody who is signed in to the console may try requests without typing a token. A token
// that is typed wins over the session.
viewer.addEventListener("before-try", (event) => {
  const request = (event as CustomEvent<{ request: { headers: Headers } }>).detail.request;
  if (!request.headers.has("Authorization")) request.headers.set("X-Switchyard-Console", "1");
});
