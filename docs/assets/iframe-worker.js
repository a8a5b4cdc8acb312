// Browsers refuse a Worker to pages that are read from the disk. There a hidden frame does the work of the site's search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => load(frame, script)), Promise.resolve());
      this.ready = load(frame, address);
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };

  function load(frame, address) {
    const script = frame.contentDocument.createElement("script");
    script.src = new URL(address, location.href);
    return new Promise((resolve, reject) => {
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error(`${address} cannot be read`)));
      frame.contentDocument.body.append(script);
    });
  }
}
