// Search in pages that were opened as files: a browser refuses workers there, so the worker's script runs in a hidden
// frame, which has the page's origin. Of a worker it has what the search of this site uses: messages both ways.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      const script = frame.contentDocument.createElement("script");
      this.ready = new Promise((done) => script.addEventListener("load", done));
      script.src = url;
      frame.contentDocument.body.append(script);
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", {data}));
    }
  };
}
