// How long a credential is good for, as forms offer it.

export const expiries = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "", label: "No end" },
];

export function expiryAfter(days: string): string | null {
  return days === "" ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
}
