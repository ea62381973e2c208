// The pages of this folder as one chunk: a person who opens one soon opens others, and many
// small chunks would take more requests than they save bytes.

export { default as members } from "./members";
export { default as teams } from "./teams";
export { default as labels } from "./labels";
export { default as projects } from "./projects";
export { default as tokens } from "./tokens";
export { default as webhooks } from "./webhooks";
export { default as inbound } from "./inbound";
export { default as oauth } from "./oauth";
export { default as scim } from "./scim";
export { default as audit } from "./audit";
export { default as retention } from "./retention";
export { default as usage } from "./usage";
