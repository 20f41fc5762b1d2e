// Sets light or dark before the page is drawn, so that it does not flash, and says that scripts run.
// The rest is in headgate.js.
"use strict";
document.documentElement.classList.add("scripted");
{
  const theme = localStorage.getItem("headgate-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
