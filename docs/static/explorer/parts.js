// Parts that both pages have: sliders, buttons, cards, suggestions, the line for errors, the scheme of colours.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});

  lab.card = (parent, place, title, said) => {
    const card = lab.html(parent, "section", { class: `card ${place}` });
    card.heading = lab.html(card, "h3", {}, title);
    card.said = lab.html(card, "p", {}, said);
    return card;
  };

  lab.slider = (parent, label, least, most, step, moved) => {
    const box = lab.html(parent, "label", { class: "slider" });
    const name = lab.html(box, "span", {}, label), shown = lab.html(box, "output");
    const input = lab.html(box, "input", { type: "range", min: least, max: most, step });
    input.addEventListener("input", () => moved(Number(input.value)));
    return (value, text, maximum = most, label = null) => {
      input.max = maximum;
      input.value = value;
      shown.textContent = text;
      input.setAttribute("aria-valuetext", text);
      if (label) name.textContent = label;
    };
  };

  // A table with a column for each predictor, in its colour, and a row for each of these numbers.
  lab.valueTable = (parent, names, lines) => {
    const table = lab.html(parent, "table"), head = lab.html(lab.html(table, "thead"), "tr"), body = lab.html(table, "tbody");
    lab.html(head, "td");
    const columns = {};
    for (const [name, colour] of names) columns[name] = { head: lab.html(head, "th", { scope: "col", style: `color: var(${colour})` }), cells: [] };
    for (const text of lines) {
      const line = lab.html(body, "tr");
      lab.html(line, "th", { scope: "row" }, text);
      for (const [name] of names) columns[name].cells.push(lab.html(line, "td"));
    }
    return columns;
  };

  lab.button = (parent, text, pressed, act) => {
    const made = lab.html(parent, "button", { type: "button" }, text);
    if (pressed !== null) made.setAttribute("aria-pressed", pressed);
    made.addEventListener("click", act);
    return made;
  };

  // A button that plays: begin() at its start, then advance() each so many milliseconds, until that says it has ended.
  // Gives what stops it.
  lab.player = (parent, what, milliseconds, begin, advance) => {
    let playing = 0;
    const stop = () => {
      clearInterval(playing);
      playing = 0;
      button.textContent = `▶ Play ${what}`;
    };
    const button = lab.button(parent, `▶ Play ${what}`, null, () => {
      if (playing) return stop();
      begin();
      button.textContent = "■ Stop";
      playing = setInterval(() => advance() && stop(), milliseconds);
    });
    return stop;
  };

  // Says what there is to see: a title, and a sentence or two; only if it is another, for it is read aloud.
  lab.say = (finding, title, text) => {
    if (finding.dataset.said === title + text) return;
    finding.dataset.said = title + text;
    finding.textContent = title;
    lab.html(finding, "span", {}, text);
  };

  // Copies the link of a state.
  lab.copyLink = (parent, link) => {
    const label = "Copy the link of this state";
    const copied = lab.button(parent, label, null, () => {
      const done = (said) => {
        copied.textContent = said;
        setTimeout(() => (copied.textContent = label), 2500);
      };
      const failed = () => done("Copy the address of this page instead");
      if (navigator.clipboard) navigator.clipboard.writeText(location.href.split("#")[0] + link()).then(() => done("Copied"), failed);
      else failed();
    });
  };

  // Buttons that draw another context, and undo moves or, if there are none, the last new context. To be called when
  // the state has changed.
  lab.contexts = (parent, state, changed) => {
    const before = [];
    lab.button(parent, "New context", null, () => {
      const { seed, moved } = state();
      before.push({ seed, moved });
      Object.assign(state(), { seed: (seed * 7 + 13) % 99991, moved: {} });
      changed();
    });
    const moves = () => Object.keys(state().moved).length > 0;
    const undo = lab.button(parent, "Undo moves", null, () => {
      Object.assign(state(), moves() ? { moved: {} } : before.pop());
      changed();
    });
    return () => {
      undo.disabled = !moves() && !before.length;
      undo.textContent = moves() || !before.length ? "Undo moves" : "Undo new context";
    };
  };

  // The titles of suggestions in a line; the one whose state is shown is marked.
  lab.tour = (parent, list) => {
    const line = lab.html(parent, "nav", { class: "row tour", "aria-label": "try this" });
    lab.html(line, "b", {}, "Try this");
    const links = list.map(([title, , hash]) => lab.html(line, "a", { href: hash }, title));
    return (hash) => links.forEach((link) => (link.hash === hash ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
  };

  // Links of states, each with what to try there.
  lab.suggestions = (parent, list) => {
    const box = lab.html(parent, "ul", { class: "try" });
    for (const [title, text, hash] of list) {
      const link = lab.html(lab.html(box, "li"), "a", { href: hash });
      lab.html(link, "b", {}, title);
      lab.html(link, "span", {}, text);
    }
  };

  // Calls back when the page's colours change.
  lab.onScheme = (changed) => {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
    new MutationObserver(changed).observe(document.body, { attributes: true, attributeFilter: ["data-theme"] });
  };

  // One drawing a frame, however often it is asked for; and the state's link, once it rests.
  lab.frames = (draw, rested) => {
    let asked = 0, resting = 0;
    return () => {
      if (!asked)
        asked = requestAnimationFrame(() => {
          asked = 0;
          draw();
        });
      clearTimeout(resting);
      resting = setTimeout(rested, 250);
    };
  };
})();
