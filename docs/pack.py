"""Pack a page for the site: `python docs/pack.py site/report.html`. The browser unpacks it; links into it work."""

import base64
import gzip
import sys
from pathlib import Path

SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>fedbench report</title>
</head>
<body>
<p>Unpacking all numbers&nbsp;&hellip;</p>
<noscript><p>This page needs JavaScript. <code>fedbench report</code> writes one that does not.</p></noscript>
<script>
const packed = Uint8Array.from(atob("{packed}"), (letter) => letter.charCodeAt(0));
const content = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
new Response(content).text().then((page) => {
  document.open();
  document.write(page);
  document.close();
});
</script>
</body>
</html>
"""


def packed(page: str) -> str:
    """Return a page that unpacks the given one in the browser."""
    content = gzip.compress(page.encode(), mtime=0)
    return SHELL.replace("{packed}", base64.b64encode(content).decode())


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(packed(path.read_text(encoding="utf-8")), encoding="utf-8")
