/** Whether no value is NaN or infinite. */
export function areFinite(values: Float32Array): boolean {
  // Zero times a finite number is zero, and times any other value it is NaN. One sum is cheaper than a check of each value.
  let zero = 0;
  for (let i = 0; i < values.length; i++) zero += values[i]! * 0;
  return zero === 0;
}
