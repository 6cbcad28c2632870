// Before the first paint, and therefore not a module: the theme that was chosen last time.
try {
  const chosen = localStorage.getItem("regard.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage is forbidden: the system's theme it is
}
