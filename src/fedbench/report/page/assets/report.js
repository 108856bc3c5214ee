"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const table = byId("all"), body = table.tBodies[0], rows = [...body.rows];
  const dialog = byId("dialog"), inside = byId("dialog-body"), store = byId("cells");

  // ---- search and filter: every word ("p = 8" is one) must occur, and the verdict must be among the pressed ones
  const search = byId("search"), chips = all("[data-state]", document.querySelector(".chips"));
  const folded = (text) => text.toLowerCase().replace(/\s*=\s*/g, "=").replace(/\s+/g, " ").trim();
  const texts = new Map(rows.map((row) => [row, folded(row.textContent)]));
  const filter = () => {
    const words = folded(search.value).split(" ");
    const states = new Set(chips.filter((c) => c.ariaPressed === "true").map((c) => c.dataset.state));
    let shown = 0;
    for (const row of rows) {
      const fits = (!states.size || states.has(row.dataset.state)) && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    byId("shown").textContent = `${shown} of ${rows.length} numbers`;
  };
  search.addEventListener("input", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.ariaPressed = String(chip.ariaPressed !== "true");
      filter();
    });
  }
  for (const card of all(".card")) {
    card.addEventListener("click", () => {
      const wanted = card.dataset.states.split("|");
      for (const chip of chips) chip.ariaPressed = String(wanted.includes(chip.dataset.state));
      search.value = "";
      filter();
    });
  }

  // ---- sort: numbers by value, words naturally, what is missing always last
  const collator = new Intl.Collator("en", { numeric: true });
  const content = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value ?? cell.textContent.trim();
  };
  all("thead th", table).forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const falling = head.ariaSort === "ascending";
      const numeric = rows.some((row) => row.cells[column].dataset.value !== undefined);
      const order = numeric ? (a, b) => Number(a) - Number(b) : collator.compare;
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      head.ariaSort = falling ? "descending" : "ascending";
      const sorted = [...rows].sort((left, right) => {
        const a = content(left, column), b = content(right, column);
        if (a === "" || b === "") return (a === "") - (b === "");
        return falling ? order(b, a) : order(a, b);
      });
      body.append(...sorted);
    });
  });

  // ---- one cell: the address names it, the dialog shows it
  let opener = null;
  const target = () => {
    try {
      return byId(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null;
    }
  };
  const put_back = () => store.append(...inside.children);
  const reveal = (part) => {
    for (let box = part?.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    const chapter = part?.querySelector(":scope > details");
    if (chapter) chapter.open = true;
    part?.scrollIntoView();
  };
  const follow = () => {
    const cell = target();
    if (!cell?.classList.contains("cell")) {
      if (dialog.open) dialog.close();
      reveal(cell);
      return;
    }
    put_back();
    inside.append(cell);
    byId("dialog-title").textContent = cell.dataset.title;
    if (!dialog.open) {
      dialog.showModal();
      // not by the attribute autofocus: browsers complain of it where a link has the focus while the page still loads
      byId("close").focus();
    }
    dialog.scrollTop = 0;
  };
  const step = (by) => {
    const order = [...new Set([...body.rows].filter((row) => !row.hidden).map((row) => row.dataset.cell).filter(Boolean))];
    const here = order.indexOf(inside.firstElementChild?.id);
    if (!order.length) return;
    const next = order[(here + by + order.length) % order.length];
    history.replaceState(null, "", `#${encodeURIComponent(next).replaceAll("%2F", "/")}`); // no jump: the focus stays
    follow();
  };
  dialog.addEventListener("close", () => {
    put_back();
    if (target()?.classList.contains("cell")) history.pushState(null, "", "#");
    opener?.focus?.({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.target.closest("pre, .wide")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  byId("close").addEventListener("click", () => dialog.close());
  byId("previous").addEventListener("click", () => step(-1));
  byId("next").addEventListener("click", () => step(1));
  addEventListener("click", (event) => {
    opener = event.target.closest("a[href^='#']") ?? opener; // following a link takes the focus from it
  });
  addEventListener("hashchange", follow);
  follow();
})();
