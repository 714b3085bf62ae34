// On the pages without a session: keeps where a person wanted to go, for after the login. The link
// that `hardsave ui` opens says so, too, and needs no click.
if (location.hash.startsWith("#/")) {
  try {
    sessionStorage.setItem("hardsave:wanted", location.hash);
  } catch {
    // home, then
  }
  addEventListener("DOMContentLoaded", () => document.querySelector("form:has([name=key])")?.requestSubmit());
}
