/**
 * Finds the texts that end the encoder process that runs them (a fault in the runtime, memory used up), so that they are
 * refused, and whatever else is asked for is answered.
 *
 * A text goes with others until two processes have ended under them (one, where its tenant's texts have ended some
 * alone of late); from then on it goes alone (see `quarantine.ts`).
 * One under which two processes ended while it was the only call there is guilty. Only a process that was replaced
 * counts: a connection that breaks is nobody's fault.
 *
 * What is known of a text outlives its request, else one that is asked for again and again would end as many processes.
 * It is kept under a digest with a key of this process, so that the memory tells nothing of a text, and under its
 * tenant's name, so that nothing one tenant asks is answered from what another did.
 */
import { createHmac, randomBytes } from 'node:crypto';
import type { EncodeOptions } from './contract.ts';

/** Processes that end under a text among others, and under it alone, before that counts. */
const endsTogetherMax = 2;
const endsAloneMax = 2;
/** Processes that end under a text among others before it is not run so any more at all. */
const endsTogetherStrictMax = 4;

/** An encoder that was lost while it had a text: one object for each process. */
export interface Loss {
  readonly address: string;
  /** Whether another process has taken its place; undefined until that is known. */
  readonly replaced: boolean | undefined;
}

export interface CrashSuspectsOptions {
  /** How long a text is remembered after it was last lost. */
  readonly keepMs: { readonly suspect: number; readonly guilty: number };
  /** Texts remembered; the one suspected longest ago makes room. */
  readonly textsMax: number;
  /** Processes that may end under single queries, or documents, of one tenant within `endsWindowMs`. */
  readonly endsMax: number;
  readonly endsWindowMs: number;
  readonly nowMs?: () => number;
}

/** What tells one text from another. */
export type SuspectKind = 'query' | { readonly chunking: object };

interface Entry {
  readonly together: Loss[];
  readonly alone: Loss[];
  lostAtMs: number;
  told: boolean;
}

interface End {
  readonly loss: Loss;
  readonly atMs: number;
}

export class CrashSuspects {
  readonly #options: CrashSuspectsOptions;
  readonly #key = randomBytes(32);
  /** By digest, the one suspected longest ago first. */
  readonly #entries = new Map<string, Entry>();
  /** Under single texts, the oldest first. Queries and documents of a tenant count by themselves. */
  readonly #endsOfTenants = new Map<string, readonly End[]>();

  constructor(options: CrashSuspectsOptions) {
    this.#options = options;
  }

  about(text: string, kind: SuspectKind, owner: SuspectOwner): Suspect {
    const { tenantId, model, modelVersion } = owner;
    let digest: string | undefined;
    const key = (): string =>
      (digest ??= createHmac('sha256', this.#key)
        .update(JSON.stringify([tenantId, model, modelVersion, kind]))
        .update(text)
        .digest('base64'));
    return new Suspect({
      // While all is well no digest is made.
      entry: () => (this.#entries.size === 0 ? undefined : this.#remembered(key())),
      lost: (loss, alone) => {
        this.#note(key(), loss, alone);
        if (alone) this.#noteEnd(keyOf(kind, owner), loss);
      },
      brakedMs: () => this.#brakedMs(keyOf(kind, owner)),
      ofBadTenant: () => this.#ends(keyOf(kind, owner)).length > 0,
      forget: () => this.#entries.delete(key()),
    });
  }

  #brakedMs(tenant: string): number {
    const ends = this.#ends(tenant);
    const last = ends.at(-this.#options.endsMax);
    return last === undefined ? 0 : last.atMs + this.#options.endsWindowMs - this.#nowMs();
  }

  /** Of late, and known. */
  #ends(tenant: string): readonly End[] {
    const sinceMs = this.#nowMs() - this.#options.endsWindowMs;
    const ends = this.#endsOfTenants.get(tenant) ?? [];
    return ends.filter(({ loss, atMs }) => atMs > sinceMs && loss.replaced === true);
  }

  #remembered(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#isKept(entry)) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  #note(key: string, loss: Loss, alone: boolean): void {
    const entry = this.#remembered(key) ?? { together: [], alone: [], lostAtMs: 0, told: false };
    entry.lostAtMs = this.#nowMs();
    const losses = alone ? entry.alone : entry.together;
    // Several calls with one text may be lost with one process.
    if (!losses.includes(loss)) losses.push(loss);
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const [oldest, each] of this.#entries) {
      if (this.#isKept(each) && this.#entries.size <= this.#options.textsMax) break;
      this.#entries.delete(oldest);
    }
  }

  #isKept({ alone, lostAtMs }: Entry): boolean {
    const { suspect, guilty } = this.#options.keepMs;
    return this.#nowMs() - lostAtMs < (replaced(alone) >= endsAloneMax ? guilty : suspect);
  }

  #noteEnd(tenant: string, loss: Loss): void {
    const atMs = this.#nowMs();
    const sinceMs = atMs - this.#options.endsWindowMs;
    for (const [each, ends] of this.#endsOfTenants) {
      const recent = ends.filter((end) => end.atMs > sinceMs);
      if (recent.length === 0) this.#endsOfTenants.delete(each);
      else this.#endsOfTenants.set(each, recent);
    }
    this.#endsOfTenants.set(tenant, [...(this.#endsOfTenants.get(tenant) ?? []), { loss, atMs }]);
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

type SuspectOwner = Pick<EncodeOptions, 'tenantId' | 'model' | 'modelVersion'>;

/** What is remembered of one text. */
interface TextMemory {
  readonly entry: () => Entry | undefined;
  readonly lost: (loss: Loss, alone: boolean) => void;
  readonly forget: () => void;
  readonly brakedMs: () => number;
  readonly ofBadTenant: () => boolean;
}

/** One text of one call. */
export class Suspect {
  readonly #memory: TextMemory;

  constructor(memory: TextMemory) {
    this.#memory = memory;
  }

  /** Whether it is to go alone. */
  get goesAlone(): boolean {
    const entry = this.#memory.entry();
    if (entry === undefined) return false;
    const endsMax = this.#memory.ofBadTenant() ? 1 : endsTogetherMax;
    return replaced(entry.together) >= endsMax || entry.alone.some(mayBlame);
  }

  /** Whether it is to go alone or not at all: so little speaks for it. */
  get goesAloneOnly(): boolean {
    const entry = this.#memory.entry();
    if (entry === undefined) return false;
    return replaced(entry.together) >= endsTogetherStrictMax || entry.alone.some(mayBlame);
  }

  /** What may be its fault, enough for a verdict once it is known what became of the processes; else empty. */
  get accusations(): readonly Loss[] {
    const losses = this.#memory.entry()?.alone.filter(mayBlame) ?? [];
    return losses.length < endsAloneMax ? [] : losses;
  }

  get guilty(): boolean {
    return replaced(this.#memory.entry()?.alone ?? []) >= endsAloneMax;
  }

  /** How long its tenant has to wait before such texts are run again; 0 = not at all. */
  get brakedMs(): number {
    return this.#memory.brakedMs();
  }

  /** An encoder was lost that had it, and maybe others. */
  lost(loss: Loss, alone: boolean): void {
    this.#memory.lost(loss, alone);
  }

  /** It came through. */
  cleared(): void {
    if (this.#memory.entry() !== undefined) this.#memory.forget();
  }

  /** The loss that made it guilty, the first time this is asked. */
  conviction(): Loss | undefined {
    const entry = this.#memory.entry();
    if (entry === undefined || entry.told || !this.guilty) return undefined;
    entry.told = true;
    return entry.alone.at(-1);
  }
}

function keyOf(kind: SuspectKind, { tenantId }: SuspectOwner): string {
  return JSON.stringify([kind === 'query', tenantId]);
}

function replaced(losses: readonly Loss[]): number {
  return losses.filter((loss) => loss.replaced === true).length;
}

function mayBlame(loss: Loss): boolean {
  return loss.replaced !== false;
}
