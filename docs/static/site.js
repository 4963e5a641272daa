document.addEventListener("DOMContentLoaded", () => {
  // What scrolls sideways takes the focus, so that the arrow keys scroll it.
  for (const box of document.querySelectorAll("pre, table.docutils, .table-wrapper, .sidebar-scroll, .toc-scroll")) {
    box.tabIndex = 0;
  }
  // Sphinx says that these are headings, and not of which level.
  for (const caption of document.querySelectorAll("p.caption[role=heading]")) {
    caption.ariaLevel = 2;
  }
});
