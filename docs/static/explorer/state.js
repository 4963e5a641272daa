// The state of a page as the part of its address behind #, so that a state is a link.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});
  const VERSION = "v1";

  // Settings and their defaults, least, greatest and digits; a text has no range.
  lab.FIELDS = {
    run: ["d2_seed2"],
    step: [-1, -1, 1e9, 0], // place of the checkpoint; -1: the last
    depth: [1, 1, 20, 0],
    damping: [1, 0, 1, 2],
    pairs: [10, 1, 40, 0],
    noise: [0, 0, 1, 2],
    range: [1, 0.25, 3, 2],
    seed: [3, 0, 999999, 0],
    frozen: [0, 0, 1, 0], // 1: step sizes stay those of the training
    plus: [0, 0, 1, 0], // 1: GD++ is drawn
  };

  lab.write = (state, fields = lab.FIELDS) => {
    const parts = [VERSION];
    for (const [name, [start, , , digits]] of Object.entries(fields)) {
      const value = state[name];
      if (value !== start) parts.push(`${name}=${digits === undefined ? value : +value.toFixed(digits)}`);
    }
    for (const [name, values] of Object.entries(state.moved))
      parts.push(`${name}=${Array.from(values, (value) => +value.toFixed(3)).join(",")}`);
    return `#${parts.join("&")}`;
  };

  // A name for a file, of what differs from the first state.
  lab.fileName = (start, link) => (start + link.replace(/^#v\d+/, "").replace(/[^\w.-]+/g, "_")).slice(0, 100);

  // Whether an address names a place of the page, as the link that skips the navigation does, and no state.
  lab.isPlace = (hash) => hash.length > 1 && document.getElementById(hash.slice(1)) !== null;

  // Loads the state of a link that was followed. The address itself may be the last state's again by now, for it is
  // written after each frame.
  lab.followed = (event, load) => {
    const { hash } = new URL(event.newURL);
    if (!lab.isPlace(hash)) load(hash);
  };

  // {state} of an address, and if a part cannot be read {error}: a sentence. moved has the places of what was dragged:
  // w, q, p0, p1, ...
  lab.read = (hash, fields = lab.FIELDS) => {
    const state = { moved: {} };
    for (const [name, [start]] of Object.entries(fields)) state[name] = start;
    const [version, ...parts] = hash.replace(/^#/, "").split("&");
    if (version === "" || lab.isPlace(hash)) return { state };
    if (!/^v\d+$/.test(version)) return { state, error: "The address is no link of this page, so the page shows its first state." };
    if (version !== VERSION)
      return { state, error: "This link was made by another version of the page, so the page shows its first state." };
    const unread = [];
    for (const part of parts) {
      const [name, text = ""] = part.split("=");
      const field = Object.hasOwn(fields, name) ? fields[name] : null;
      if (field && field.length === 1 && /^[\w-]{1,40}$/.test(text)) state[name] = text;
      else if (field && text.trim() !== "" && Number(text) >= field[1] && Number(text) <= field[2])
        state[name] = field[3] === 0 ? Math.round(Number(text)) : Number(text);
      else if (/^(w|q|q2|p\d{1,2})$/.test(name) && text.split(",").every((one) => one.trim() !== "" && Math.abs(one) < 100))
        state.moved[name] = text.split(",").map(Number);
      else unread.push(part);
    }
    if (!unread.length) return { state };
    const first = unread[0].length > 24 ? `${unread[0].slice(0, 24)}…` : unread[0];
    return { state, error: `This link is damaged: ${first || "a part"} cannot be read${unread.length > 1 ? `, and ${unread.length - 1} more` : ""}. The page shows the rest.` };
  };
})();
