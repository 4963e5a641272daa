// Saves pictures side by side with a title and a line below, as SVG or PNG.
(() => {
  "use strict";
  const lab = (window.lab = window.lab || {});
  const NS = "http://www.w3.org/2000/svg", GAP = 24, TOP = 64, BELOW = 34;

  // One SVG of several pictures; ids are made distinct.
  lab.sheet = (pictures, title, below, colours) => {
    const width = pictures.reduce((sum, each) => sum + each.width + GAP, GAP);
    const height = TOP + Math.max(...pictures.map((each) => each.height)) + BELOW;
    const sheet = document.createElementNS(NS, "svg");
    const set = (node, values) => Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
    set(sheet, { xmlns: NS, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif" });
    const add = (tag, values, text = "") => {
      const node = document.createElementNS(NS, tag);
      set(node, values);
      node.textContent = text;
      sheet.append(node);
    };
    add("rect", { width, height, fill: colours.paper });
    add("text", { x: GAP, y: 38, "font-size": Math.min(20, (1.85 * width) / Math.max(40, title.length)), "font-weight": 700, fill: colours.ink }, title);
    add("text", { x: GAP, y: height - 14, "font-size": 12, fill: colours.muted }, below);
    let x = GAP;
    for (const picture of pictures) {
      const copy = picture.node.cloneNode(true);
      set(copy, { x, y: TOP, width: picture.width, height: picture.height });
      sheet.append(copy);
      x += picture.width + GAP;
    }
    return { text: new XMLSerializer().serializeToString(sheet), width, height };
  };

  const download = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  lab.save = (kind, name, ...parts) => {
    const { text, width, height } = lab.sheet(...parts);
    if (kind === "svg") return download(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download(blob, `${name}.png`), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
})();
