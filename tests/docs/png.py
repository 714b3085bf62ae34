"""A picture of a screen as a small PNG: few colours, each pixel a number of one of them.

Chromium decodes what it has taken itself, so nothing needs to be installed for it.
"""

import struct
import zlib
from base64 import b64decode, b64encode

from playwright.sync_api import Page

FREQUENT, DISTANT = 64, 64  # colours that are kept: of large parts, and unlike all others
_SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Colours that are kept, and for each pixel the number of the one that is nearest to its own.
_INDEXED = """async ([picture, frequent, distant]) => {
  const image = await createImageBitmap(await (await fetch(picture)).blob());
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const counts = new Map();
  const pixels = new Uint32Array(width * height);
  for (let at = 0; at < pixels.length; at += 1) {
    const own = (data[at * 4] << 16) | (data[at * 4 + 1] << 8) | data[at * 4 + 2];
    pixels[at] = own;
    counts.set(own, (counts.get(own) ?? 0) + 1);
  }
  const parts = (one) => [one >> 16, (one >> 8) & 255, one & 255];
  const away = (one, other) => one.reduce((sum, part, at) => sum + (part - other[at]) ** 2, 0);
  const kept = [];
  const nearest = new Map([...counts.keys()].map((own) => [own, { far: Infinity, place: 0 }]));
  const keep = (one) => {
    for (const [own, known] of nearest) {
      const far = away(parts(own), parts(one));
      if (far < known.far) Object.assign(known, { far, place: kept.length });
    }
    kept.push(parts(one));
  };
  const first = [...counts].sort((a, b) => b[1] - a[1]).slice(0, frequent);
  for (const [own] of first) keep(own);
  for (let more = 0; more < distant; more += 1) {
    const [own, { far }] = [...nearest].reduce((a, b) => (b[1].far > a[1].far ? b : a));
    if (far) keep(own);
  }
  let indices = "";
  for (const own of pixels) indices += String.fromCharCode(nearest.get(own).place);
  return [width, height, btoa(indices), kept.flat()];
}"""


def small(screenshot: bytes, page: Page) -> bytes:
    """The same picture in few colours; `page` is any that allows scripts."""
    address = f"data:image/png;base64,{b64encode(screenshot).decode()}"
    width, height, indices, palette = page.evaluate(_INDEXED, [address, FREQUENT, DISTANT])
    pixels = b64decode(indices)
    rows = b"".join(b"\0" + pixels[at : at + width] for at in range(0, len(pixels), width))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (b"IHDR", header), (b"PLTE", bytes(palette)), (b"IDAT", zlib.compress(rows, 9))
    return _SIGNATURE + b"".join(_chunk(*part) for part in (*parts, (b"IEND", b"")))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )
