// The call that a job asks about, as its question words it.

/** { tool, args } of the question about a call; null if it is worded otherwise. Pure. */
export function callOf(text) {
  const found = /^may it call ([^\s(]+)\(([^]*)\)\?$/.exec(text);
  if (!found) return null;
  try {
    const args = JSON.parse(found[2]);
    return args && typeof args === "object" && !Array.isArray(args) ? { tool: found[1], args } : null;
  } catch {
    return null;
  }
}
