"use strict";
(() => {
  const worst = ["fail", "error", "timeout", "mistrusted", "xpass", "not-run", "xfail", "pass", "skipped", "unsupported"];
  const form = document.getElementById("filters");
  const matrix = document.getElementById("matrix");
  const panel = document.getElementById("panel");
  const verdicts = [...document.querySelectorAll("#details > article")].map((article) => ({
    article, ...article.dataset, words: article.textContent.toLowerCase(),
    symbol: article.querySelector(".symbol").textContent,
  }));
  const rows = [...matrix.tBodies[0].rows].map((row) => ({ row, cells: [...row.cells].slice(2) }));
  const heads = [...matrix.tHead.rows[matrix.tHead.rows.length - 1].cells].filter((th) => th.classList.contains("schedule"));
  const groups = matrix.tHead.rows.length > 1 ? [...matrix.tHead.rows[0].cells].slice(2) : [];
  document.documentElement.classList.add("js");
  form.hidden = false;

  const wanted = () => {
    const data = new FormData(form);
    const statuses = data.getAll("status");
    const words = (data.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    return (v) => (statuses.length === 0 || statuses.includes(v.status)) && words.every((word) => v.words.includes(word)) &&
      ["truth", "report", "ranks", "transport"].every((name) => !data.get(name) || data.get(name) === v[name]);
  };

  const show = (link, matching) => {
    link.hidden = matching.length === 0;
    if (link.hidden) return;
    const first = matching.reduce((a, b) => (worst.indexOf(b.status) < worst.indexOf(a.status) ? b : a));
    link.className = first.status;
    link.href = "#" + first.article.id;
    link.querySelector(".symbol").textContent = first.symbol;
    link.querySelector("sub").textContent = matching.length > 1 ? matching.length : "";
    link.setAttribute("aria-label", link.dataset.name + ": " + first.status);
  };

  const behind = (link, matches) => link.dataset.v.split(" ").map((i) => verdicts[i]).filter(matches);

  const filter = () => {
    const matches = wanted();
    const used = heads.map(() => false);
    let shown = 0;
    for (const { row, cells } of rows) {
      let any = false;
      cells.forEach((cell, column) => {
        const link = cell.firstElementChild;
        if (!link) return;
        const matching = behind(link, matches);
        show(link, matching);
        shown += matching.length;
        if (matching.length > 0) any = used[column] = true;
      });
      row.hidden = !any;
    }
    heads.forEach((head, column) => { head.hidden = !used[column]; });
    for (const { cells } of rows) cells.forEach((cell, column) => { cell.hidden = !used[column]; });
    groups.forEach((group, g) => {
      const each = heads.length / groups.length;
      const left = used.slice(g * each, (g + 1) * each).filter(Boolean).length;
      group.hidden = left === 0;
      group.colSpan = Math.max(1, left);
    });
    document.getElementById("shown").textContent = shown + " of " + verdicts.length + " verdicts";
  };

  const remember = () => {
    const chosen = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) chosen.append(name, value);
    const text = chosen.toString();
    history.replaceState(null, "", text ? "#f:" + text : location.pathname + location.search);
  };

  const open = (articles) => {
    const body = document.getElementById("panel-body");
    body.replaceChildren(...articles.map((article) => {
      const copy = article.cloneNode(true);
      copy.removeAttribute("id");
      return copy;
    }));
    panel.showModal();
    panel.scrollTop = 0;
  };

  const follow = () => {
    const hash = location.hash;
    if (hash.startsWith("#f:")) {
      form.reset();
      for (const [name, value] of new URLSearchParams(hash.slice(3)))
        for (const field of form.querySelectorAll("[name]"))
          if (field.name === name) {
            if (field.type !== "checkbox") field.value = value;
            else if (field.value === value) field.checked = true;
          }
    } else if (/^#v\d+$/.test(hash) && verdicts[hash.slice(2)]) {
      open([verdicts[hash.slice(2)].article]);
    }
    filter();
  };

  form.addEventListener("input", () => { filter(); remember(); });
  form.addEventListener("reset", () => setTimeout(() => { filter(); remember(); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  matrix.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const rank = (v) => worst.indexOf(v.status);
    open(behind(link, wanted()).sort((a, b) => rank(a) - rank(b)).map((v) => v.article));
  });
  matrix.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    if (!step || !cell) return;
    let r = rows.findIndex(({ row }) => row === cell.parentElement);
    let c = rows[r].cells.indexOf(cell);
    for (;;) {
      r += step[0];
      c += step[1];
      if (!rows[r] || !rows[r].cells[c]) return;
      const link = rows[r].cells[c].firstElementChild;
      if (link && !link.hidden && !rows[r].row.hidden) {
        event.preventDefault();
        link.focus();
        return;
      }
    }
  });
  panel.addEventListener("click", (event) => {
    if (event.target === panel) panel.close();
    const button = event.target.closest(".copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    const done = () => { button.textContent = "Copied"; };
    const select = () => {
      getSelection().selectAllChildren(code);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  });
  for (const button of document.querySelectorAll(".copy")) button.hidden = false;
  addEventListener("hashchange", follow);
  follow();
})();
