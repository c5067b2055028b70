// What the program put into the page: a JSON text, and columns of numbers as compressed bytes.

const types = {
  f64: Float64Array, f32: Float32Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array,
};

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// {json, column(name)}; a column that is not there is empty.
export async function readData() {
  const json = JSON.parse(document.getElementById("data").textContent);
  const text = document.getElementById("bytes").textContent.trim();
  const buffer = text ? await inflate(fromBase64(text)) : new ArrayBuffer(0);
  const columns = new Map();
  for (const { name, type, offset, count } of json.columns ?? [])
    columns.set(name, new types[type](buffer, offset, count));
  return { json, column: (name) => columns.get(name) ?? new Float64Array(0) };
}
