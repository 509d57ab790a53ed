"use strict";
// A list that keeps only the visible rows in the document, so that its length costs nothing.
(function (rolewise) {
  const SPARE = 6;

  rolewise.VirtualList = class {
    /** `fill(row element, index)` draws a row; `pick(index)` is told of a click. */
    constructor(container, rowHeight, fill, pick) {
      this.container = container;
      this.rowHeight = rowHeight;
      this.fill = fill;
      this.count = 0;
      this.selected = -1;
      this.sheet = rolewise.element("div", { class: "sheet", role: "presentation" });
      container.replaceChildren(this.sheet);
      let queued = false;
      const redraw = () => {
        if (queued) return;
        queued = true;
        requestAnimationFrame(() => {
          queued = false;
          this.draw();
        });
      };
      container.addEventListener("scroll", redraw, { passive: true });
      new ResizeObserver(redraw).observe(container);
      container.addEventListener("click", (event) => {
        const row = event.target.closest("[role=option]");
        if (row) pick(Number(row.dataset.index));
      });
    }

    reset(count, selected) {
      this.count = count;
      this.selected = selected;
      this.sheet.style.height = count * this.rowHeight + "px";
      if (selected >= 0) this.reveal(selected);
      else this.container.scrollTop = 0;
      this.draw();
    }

    select(index) {
      this.selected = index;
      if (index >= 0) this.reveal(index);
      this.draw();
    }

    reveal(index) {
      const top = index * this.rowHeight;
      const view = this.container;
      if (top < view.scrollTop) view.scrollTop = top;
      else if (top + this.rowHeight > view.scrollTop + view.clientHeight) {
        view.scrollTop = top + this.rowHeight - view.clientHeight;
      }
    }

    draw() {
      const first = Math.max(0, Math.floor(this.container.scrollTop / this.rowHeight) - SPARE);
      const visible = Math.ceil(this.container.clientHeight / this.rowHeight) + 2 * SPARE;
      const last = Math.min(this.count, first + visible);
      const rows = [];
      for (let index = first; index < last; index++) {
        const row = rolewise.element("div", {
          role: "option",
          id: "row-" + index,
          class: "row",
          "data-index": index,
          "aria-selected": index === this.selected ? "true" : "false",
          "aria-posinset": index + 1,
          "aria-setsize": this.count,
        });
        row.style.top = index * this.rowHeight + "px";
        this.fill(row, index);
        rows.push(row);
      }
      this.sheet.replaceChildren(...rows);
      const shown = this.selected >= first && this.selected < last;
      if (shown) this.container.setAttribute("aria-activedescendant", "row-" + this.selected);
      else this.container.removeAttribute("aria-activedescendant");
    }
  };
})(window.rolewise);
