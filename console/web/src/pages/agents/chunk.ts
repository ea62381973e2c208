// The pages of this folder as one chunk: a person who opens one soon opens others, and many
// small chunks would take more requests than they save bytes.

export { default as queue } from "./queue";
export { default as inbox } from "./inbox";
export { default as agents } from "./agents";
export { default as agent } from "./agent";
export { default as session } from "./session";
