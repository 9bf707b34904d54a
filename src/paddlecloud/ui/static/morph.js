// Makes an element equal to new HTML while what did not change stays in place: focus, selection, scrolling, open details.
// Texts from the server are parsed as HTML that it escaped; nothing is evaluated.

export function morph(element, html) {
  const wanted = document.createElement("template");
  wanted.innerHTML = html;
  children(element, wanted.content);
}

function children(now, wanted) {
  const news = [...wanted.childNodes];
  news.forEach((node, place) => {
    const old = now.childNodes[place];
    if (!old) now.appendChild(node);
    else if (!alike(old, node)) now.replaceChild(node, old);
    else if (node.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== node.nodeValue) old.nodeValue = node.nodeValue;
    } else {
      attributes(old, node);
      children(old, node);
    }
  });
  while (now.childNodes.length > news.length) now.lastChild.remove();
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && one.id === other.id;
}

function attributes(now, wanted) {
  for (const { name } of [...now.attributes]) {
    const own = name === "open" || (name === "hidden" && now.classList.contains("copy"));
    if (!wanted.hasAttribute(name) && !own) now.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    const own = name === "hidden" && now.classList.contains("copy");
    if (!own && now.getAttribute(name) !== value) now.setAttribute(name, value);
  }
}
