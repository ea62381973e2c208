// Finds issues like the one that is being typed. The service compares titles only when an
// issue is created, so this searches for the words and compares the titles of the results.

import { useEffect, useState } from "preact/hooks";
import { api } from "../../api";
import type { Issue } from "../../types";
import { wsPath } from "../../workspace";

const little = new Set("a an and are as at be but by for from has have in is it its not of on or that the this to was when where which will with".split(" "));

export function termsOf(title: string): string[] {
  const words = title
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return [...new Set(words ?? [])].filter((word) => !little.has(word));
}

/** Words in common by the larger number of words; a word counts for its longer forms, too. */
export function likeness(a: string[], b: string[]): number {
  if (a.length === 0 || b.length === 0) return 0;
  const same = a.filter((word) => b.some((other) => other === word || (word.length > 3 && other.startsWith(word)) || (other.length > 3 && word.startsWith(other)))).length;
  return same / Math.max(a.length, b.length);
}

const pauseMs = 250;
const least = 0.34;
const most = 5;

/** Open issues whose titles are like this one, best first; it follows the typing. */
export function useDuplicates(title: string): Issue[] {
  const [found, setFound] = useState<Issue[]>([]);
  useEffect(() => {
    const terms = termsOf(title);
    if (terms.length === 0 || terms.join("").length < 4) {
      setFound([]);
      return;
    }
    const control = new AbortController();
    const timer = setTimeout(async () => {
      const long = [...terms].sort((a, b) => b.length - a.length);
      const queries = [...new Set([terms.join(" "), long.slice(0, 2).join(" "), long[0]!])];
      const byId = new Map<string, Issue>();
      for (const search of queries) {
        try {
          const page = await api.get<{ issues: Issue[] }>(wsPath("/issues"), { search, limit: 20 }, control.signal);
          for (const issue of page.issues) byId.set(issue.id, issue);
        } catch {
          return; // The list is a help; creating works without it.
        }
        if (byId.size >= 20) break;
      }
      if (control.signal.aborted) return;
      const ranked = [...byId.values()]
        .filter((issue) => issue.status !== "done" && issue.status !== "canceled")
        .map((issue) => ({ issue, score: likeness(terms, termsOf(issue.title)) }))
        .filter((entry) => entry.score >= least)
        .sort((a, b) => b.score - a.score || (a.issue.id < b.issue.id ? 1 : -1));
      setFound(ranked.slice(0, most).map((entry) => entry.issue));
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [title]);
  return found;
}
