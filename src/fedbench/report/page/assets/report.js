"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const table = byId("all"), body = table.tBodies[0], rows = [...body.rows];
  const dialog = byId("dialog"), inside = byId("dialog-body");

  // ---- search and filter: every word ("p = 8" is one) must occur, and the verdict must be among the pressed ones
  const search = byId("search"), once = byId("once"), chips = all(".chips [data-state]");
  const folded = (text) => text.toLowerCase().replace(/\s*=\s*/g, "=").replace(/\s+/g, " ").trim();
  const texts = new Map(rows.map((row) => [row, folded([...row.cells].map((cell) => cell.textContent).join(" "))]));
  const filter = () => {
    const words = folded(search.value).split(" ");
    const states = new Set(chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.dataset.state));
    for (const row of rows)
      row.hidden = (states.size && !states.has(row.dataset.state)) || (once.checked && row.dataset.once === undefined)
        || !words.every((word) => texts.get(row).includes(word));
    byId("shown").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} numbers`;
  };
  search.addEventListener("input", filter);
  once.addEventListener("change", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  for (const chip of chips)
    chip.addEventListener("click", () => {
      chip.ariaPressed = String(chip.ariaPressed !== "true");
      filter();
    });
  for (const card of all(".card"))
    card.addEventListener("click", () => {
      const wanted = card.dataset.states.split("|");
      for (const chip of chips) chip.ariaPressed = String(wanted.includes(chip.dataset.state));
      search.value = "";
      once.checked = true;
      filter();
    });

  // ---- sort: numbers by value, words naturally, what is missing always last
  const collator = new Intl.Collator("en", { numeric: true });
  all("thead th", table).forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const falling = head.ariaSort === "ascending";
      const numeric = rows.some((row) => row.cells[column].dataset.value !== undefined);
      const content = ({ cells }) => cells[column].dataset.value ?? cells[column].textContent.trim();
      const order = numeric ? (a, b) => Number(a) - Number(b) : collator.compare;
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      head.ariaSort = falling ? "descending" : "ascending";
      body.append(...[...rows].sort((left, right) => {
        const a = content(left), b = content(right);
        if (a === "" || b === "") return (a === "") - (b === "");
        return falling ? order(b, a) : order(a, b);
      }));
    });
  });

  // ---- the numbers of a table: packed in the page, saved as CSV
  const unpacked = async (link) => {
    const bytes = Uint8Array.from(atob(link.href.split(",")[1]), (letter) => letter.charCodeAt(0));
    const content = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Blob([await new Response(content).text()], { type: "text/csv" });
  };
  for (const link of all("a[download$='.gz']"))
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const saved = document.createElement("a");
      saved.href = URL.createObjectURL(await unpacked(link));
      saved.download = link.download.replace(/\.gz$/, "");
      saved.click();
    });

  // ---- one cell: the address names it, the dialog shows it with the curves of its setting
  let opener = null, place = null; // the link that was followed; where the cell's group stands in the page
  const target = () => {
    try {
      return byId(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return null;
    }
  };
  const putBack = () => {
    place?.replaceWith(...inside.children);
    place = null;
  };
  const follow = () => {
    const part = target();
    putBack();
    if (!part?.classList.contains("cell")) {
      if (dialog.open) dialog.close();
      for (let box = part?.querySelector("summary > h2")?.closest("details") ?? part?.closest("details"); box; box = box.parentElement.closest("details"))
        box.open = true;
      part?.scrollIntoView();
      return;
    }
    place = document.createComment("");
    const group = part.closest(".group");
    for (const cell of all(".cell", group)) cell.hidden = cell !== part;
    group.replaceWith(place);
    inside.append(group);
    if (!dialog.open) {
      dialog.showModal();
      byId("close").focus(); // the attribute autofocus complains where a link has the focus while the page still loads
    }
    dialog.scrollTop = 0;
  };
  const step = (by) => {
    const links = [...body.rows].filter((row) => !row.hidden).map((row) => row.querySelector("th a")?.hash);
    const order = [...new Set(links.filter(Boolean))];
    if (!order.length) return;
    const next = order[(order.indexOf(location.hash) + by + order.length) % order.length];
    history.replaceState(null, "", next); // no jump: the focus stays
    follow();
  };
  dialog.addEventListener("close", () => {
    putBack();
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
