// Light or dark as it was chosen, before anything is drawn.
try {
  const theme = localStorage.getItem("hardsave:theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // as the system has it, then
}
