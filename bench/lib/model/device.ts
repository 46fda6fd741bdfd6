/** The CPU or a GPU that inference runs on. */
export interface Device {
  readonly provider: 'cpu' | 'cuda';
  /** The number of the GPU. */
  readonly index: number;
  /** Threads of inference on the CPU. */
  readonly threads: number;
}

export function deviceName({ provider, index }: Omit<Device, 'threads'>): 'cpu' | `cuda:${number}` {
  return provider === 'cpu' ? 'cpu' : `cuda:${index}`;
}
