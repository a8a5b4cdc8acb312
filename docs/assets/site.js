// The theme's buttons that open a part of the navigation have no name, which screen readers need.
for (const button of document.querySelectorAll(".bd-sidebar summary"))
  button.setAttribute("aria-label", button.closest("li").querySelector("a").textContent);
