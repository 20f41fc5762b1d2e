// Sets light or dark before the page is drawn, so that it does not flash. The rest is in headgate.js.
"use strict";
{
  const theme = localStorage.getItem("headgate-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
