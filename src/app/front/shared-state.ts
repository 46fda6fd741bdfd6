/**
 * State of the HTTP layer that the process has once: the room for large bodies, the recent activity, the tenants' metrics and
 * whether all threads turn. It lives in the main thread, so its bounds hold over all threads.
 */
import { fromFailure, toFailure, type Failure, type ServiceError } from '../../errors.ts';
import type { BodyPlace, BodyRoom } from '../../http/body/body-room.ts';
import type { Activity, RecentActivity } from '../../http/recent-activity.ts';
import type { TenantRequest } from '../../http/tenant-metrics.ts';
import type { Handlers, Link } from '../../service/threads/link.ts';

export interface SharedState {
  readonly room: BodyRoom;
  readonly activity: RecentActivity;
  readonly observeTenant: (request: TenantRequest) => void;
  /** Resolves once every thread has replied. */
  readonly beat: () => Promise<unknown>;
}

/** Handlers for one thread. `close`: it has ended, and its bodies leave the room. */
export function hostState(
  { room, activity, observeTenant, beat }: SharedState,
  linkOf: () => Link,
): { readonly handlers: Handlers; close(): void } {
  const places = new Map<number, BodyPlace>();
  const leave = (number: number): void => {
    places.get(number)?.leave();
    places.delete(number);
  };
  return {
    handlers: {
      openPlace: (number: number, tenantId: string) => {
        const lose = (reason: ServiceError): void => linkOf().tell('losePlace', number, toFailure(reason));
        places.set(number, room.open(tenantId, lose));
      },
      // The answer to a body that has lost its place never comes.
      takeRoom: async (number: number, bytes: number) => {
        await places.get(number)?.take(bytes);
        linkOf().tell('enterRoom', number);
      },
      hasArrived: (number: number) => places.get(number)?.arrived(),
      leaveRoom: leave,
      noteSearch: (answer: Parameters<RecentActivity['note']>[0]) => activity.note(answer),
      activityFrom: () => activity.fromMs(),
      activeIndexes: (tenantId: string) => activity.indexesOf(tenantId),
      activityOf: (tenantId: string, indexId: string) => activity.of(tenantId, indexId),
      observeTenant,
      beat,
    },
    close() {
      for (const number of places.keys()) leave(number);
    },
  };
}

interface RemotePlace {
  readonly lose: (reason: ServiceError) => void;
  enter?: () => void;
}

export function remoteState(linkOf: () => Link): {
  readonly room: Pick<BodyRoom, 'open'>;
  readonly activity: Activity;
  readonly observeTenant: SharedState['observeTenant'];
  readonly beat: SharedState['beat'];
  readonly handlers: Handlers;
} {
  const places = new Map<number, RemotePlace>();
  let last = 0;
  return {
    room: {
      open(tenantId, lose) {
        const number = ++last;
        const place: RemotePlace = { lose };
        places.set(number, place);
        linkOf().tell('openPlace', number, tenantId);
        return {
          take(bytes) {
            const { promise, resolve } = Promise.withResolvers<void>();
            place.enter = resolve;
            linkOf().tell('takeRoom', number, bytes);
            return promise;
          },
          arrived: () => linkOf().tell('hasArrived', number),
          leave() {
            if (places.delete(number)) linkOf().tell('leaveRoom', number);
          },
        };
      },
    },
    activity: {
      note: (answer) => linkOf().tell('noteSearch', answer),
      fromMs: () => linkOf().call('activityFrom') as Promise<number>,
      indexesOf: (...input) => linkOf().call('activeIndexes', ...input) as Promise<readonly string[]>,
      of: (...input) => linkOf().call('activityOf', ...input) as ReturnType<Activity['of']>,
    },
    observeTenant: (request) => linkOf().tell('observeTenant', request),
    beat: () => linkOf().call('beat'),
    handlers: {
      enterRoom: (number: number) => places.get(number)?.enter?.(),
      losePlace: (number: number, reason: Failure) =>
        places.get(number)?.lose(fromFailure(reason) as ServiceError),
    },
  };
}
