/* Of several sections, the one that is chosen; without script all of them are shown. */
"use strict";
(() => {
  function start() {
    for (const form of document.querySelectorAll("form[data-choice]")) {
      const name = form.dataset.choice;
      const select = form.querySelector("select");
      const sections = [...document.querySelectorAll(`[data-choose="${name}"]`)];
      const show = () => {
        for (const section of sections) section.hidden = section.dataset.value !== select.value;
      };
      const read = () => {
        select.value = cab.state.get()[name] ?? select.options[0].value;
        if (select.selectedIndex === -1) select.selectedIndex = 0;
        show();
      };
      select.addEventListener("input", () => {
        const values = cab.state.get();
        cab.state.set({ ...values, [name]: select.selectedIndex ? select.value : "" });
        show();
      });
      form.addEventListener("submit", (event) => event.preventDefault());
      cab.state.onchange(read);
      read();
    }
  }

  cab.ready(start);
})();
