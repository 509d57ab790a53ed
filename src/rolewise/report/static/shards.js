"use strict";
// Data files are scripts that call rolewise.shard(name, payload): a page opened from file:// may
// load scripts but may not fetch.
window.rolewise = window.rolewise || {};

(function (rolewise) {
  const payloads = new Map();
  const pending = new Map();

  rolewise.shard = function (name, payload) {
    payloads.set(name, payload);
  };

  rolewise.payload = function (name) {
    return payloads.get(name);
  };

  /** A promise of the payload of `name`; names come from the catalogue, never from the address bar. */
  rolewise.load = function (name) {
    if (payloads.has(name)) return Promise.resolve(payloads.get(name));
    if (!pending.has(name)) {
      pending.set(name, new Promise(function (resolve, reject) {
        const script = document.createElement("script");
        script.src = "data/" + name.split("/").map(encodeURIComponent).join("/") + ".js";
        script.onload = function () {
          if (payloads.has(name)) resolve(payloads.get(name));
          else reject(new Error("the data file of " + name + " is damaged"));
        };
        script.onerror = function () {
          pending.delete(name);
          reject(new Error("the data file of " + name + " is missing"));
        };
        document.head.append(script);
      }));
    }
    return pending.get(name);
  };

  /** An element with attributes and children; a string child becomes a text node, never markup. */
  rolewise.element = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : String(value));
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  };
})(window.rolewise);
