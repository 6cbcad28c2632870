// Tensors of the service: {"shape": [H, T, S], "data": base64 of little-endian float32}, row by row.

/**
 * @param {{shape: number[], data: string}} packed
 * @returns {{shape: number[], data: Float32Array, at: (...indices: number[]) => number,
 *   part: (...indices: number[]) => Float32Array}}
 *   `at(head, row, column)` is one number; `part(head)` is all below the first index or indices, without a copy
 */
export function unpack({shape, data}) {
  const letters = atob(data);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const size = shape.reduce((product, each) => product * each, 1);
  if (bytes.length !== 4 * size) throw new Error(`a tensor of ${shape.join(" × ")} has ${bytes.length} bytes`);
  const values = littleEndian() ? new Float32Array(bytes.buffer) : swapped(bytes, size);
  const offset = (indices) => indices.reduce((place, index, axis) => place * shape[axis] + index, 0);
  return {
    shape,
    data: values,
    at: (...indices) => values[offset(indices)],
    part: (...indices) => {
      const length = shape.slice(indices.length).reduce((product, each) => product * each, 1);
      return values.subarray(offset(indices) * length, (offset(indices) + 1) * length);
    },
  };
}

const littleEndian = () => new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

function swapped(bytes, size) {
  const view = new DataView(bytes.buffer);
  return Float32Array.from({length: size}, (_, place) => view.getFloat32(4 * place, true));
}
