/** Plants faults: methods of an object that fail or wait at their next call. */
import type { NativeIndex } from '../../../src/index/engine/native.ts';
import type { BlobStore } from '../../../src/index/storage/blob-store.ts';

/** After so long a search gives way wherever it can. */
const leastSliceMs = 0.001;

/** Methods of the engine's index or of the catalog that fail or wait at their next call. */
export interface Faults {
  readonly faults: Map<string, Error>;
  /** Lets the next call of such a method after `callsBefore` do its work, but return only after `release`. */
  hold(method: string, callsBefore?: number): { readonly reached: Promise<void>; release(): void };
}

/** The ways to plant faults in objects made by `withFaults`. */
export function faultsOf(faults: Map<string, Error>): Faults {
  return {
    faults,
    hold(method, callsBefore = 0) {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      const hold: Hold = { reached: reached.resolve, released: released.promise, callsBefore };
      faults.set(method, Object.assign(new Error('held'), hold));
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

/** A copy of the object. A method that `faults` names fails once. */
export function withFaults<T extends object>(real: T, faults: Map<string, Error>): T {
  return new Proxy(real, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        const fault = faults.get(String(name));
        if (fault === undefined || callsLeft(fault) > 0) return Reflect.apply(member, target, given);
        faults.delete(String(name));
        if (!isHold(fault)) return Promise.reject(fault);
        return holdAfter(Promise.resolve(Reflect.apply(member, target, given)), fault);
      };
    },
  });
}

/** An index whose methods fail when `faults` names them. Its searches give way wherever they can; `search` names a slice. */
export function faultyIndex(real: NativeIndex, faults: Map<string, Error>): NativeIndex {
  const beginSearch: NativeIndex['beginSearch'] = (search) => {
    const run = real.beginSearch(search);
    const slices = withFaults({ search: () => run.next(leastSliceMs) }, faults);
    return { next: () => slices.search(), close: () => run.close() };
  };
  return new Proxy(withFaults(real, faults), {
    get: (target, name) => (name === 'beginSearch' ? beginSearch : (Reflect.get(target, name) as unknown)),
  });
}

interface Hold {
  readonly reached: () => void;
  readonly released: Promise<void>;
  callsBefore?: number;
}

function isHold(fault: Error): fault is Error & Hold {
  return 'released' in fault;
}

async function holdAfter(work: Promise<unknown>, hold: Hold): Promise<unknown> {
  const value = await work;
  hold.reached();
  await hold.released;
  return value;
}

interface Fault extends Error {
  /** Number of calls that succeed before the one that fails. */
  callsBefore?: number;
}

function callsLeft(fault: Fault): number {
  const left = fault.callsBefore ?? 0;
  fault.callsBefore = left - 1;
  return left;
}

/** A fault: after `callsBefore` calls the next one fails with an error of the engine. */
export function engineError(code: string, callsBefore = 0): Error {
  return Object.assign(new Error(`engine: ${code}`), { code, callsBefore });
}

/** The store with some methods replaced. */
export function withBlobs(blobs: BlobStore, replaced: Partial<BlobStore>): BlobStore {
  return {
    create: (name) => blobs.create(name),
    seal: (name) => blobs.seal(name),
    open: (name) => blobs.open(name),
    list: (prefix) => blobs.list(prefix),
    remove: (name) => blobs.remove(name),
    freeBytes: () => blobs.freeBytes(),
    ...replaced,
  };
}
