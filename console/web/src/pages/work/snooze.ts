/** The morning after so many days, as a moment of the API. */
export function snoozeUntil(days: number): string {
  const until = new Date();
  until.setDate(until.getDate() + days);
  until.setHours(8, 0, 0, 0);
  return until.toISOString();
}
