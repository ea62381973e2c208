// Acts of the settings pages that need a question and nothing else.

import { api } from "../../api";
import { confirm, type Question, toast, toastFailure } from "../../ui";

/**
 * Asks, sends a request without a body, and says how it went. It reports whether the act was
 * done.
 */
export async function askAndSend(question: Question, method: "DELETE" | "POST" | "PUT", path: string, done: string): Promise<boolean> {
  if (!(await confirm(question))) return false;
  return send(method, path, done);
}

async function send(method: "DELETE" | "POST" | "PUT", path: string, done: string): Promise<boolean> {
  try {
    await api.send(method, path);
    toast(done, { kind: "success" });
    return true;
  } catch (error) {
    toastFailure(error, () => void send(method, path, done));
    return false;
  }
}
