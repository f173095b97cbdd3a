"use strict";
(() => {
  const hint = document.getElementById("hint");
  const show = (event) => {
    const title = event.target.querySelector && event.target.querySelector(":scope > title");
    if (!title || !event.target.closest("svg")) { hint.hidden = true; return; }
    hint.textContent = title.textContent;
    hint.hidden = false;
    const room = document.documentElement.clientWidth - hint.offsetWidth - 8;
    hint.style.left = Math.max(0, Math.min(event.pageX + 12, room)) + "px";
    hint.style.top = (event.pageY + 16) + "px";
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("pointerdown", show);
  const toggle = (legend) => {
    const chart = legend.closest("svg"), isOff = legend.getAttribute("aria-pressed") === "true";
    legend.setAttribute("aria-pressed", String(!isOff));
    for (const part of chart.querySelectorAll(`[data-series="${legend.dataset.series}"]`)) part.classList.toggle("off", isOff);
  };
  for (const legend of document.querySelectorAll("svg [data-series]")) {
    if (!legend.querySelector("text")) continue;
    legend.classList.add("toggle");
    legend.setAttribute("role", "button");
    legend.setAttribute("tabindex", "0");
    legend.setAttribute("aria-pressed", "true");
    legend.closest("svg").setAttribute("role", "group");
    legend.addEventListener("click", () => toggle(legend));
    legend.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(legend); }
    });
  }
  window.addEventListener("beforeprint", () => { for (const one of document.querySelectorAll("details")) one.open = true; });
})();
