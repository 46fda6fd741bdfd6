/** The object store on the S3 server of the tests. */
import { startTestSeaweed } from '../../support/cluster/servers.ts';
import { describeObjectStore } from './object-store-conformance.ts';

describeObjectStore('SeaweedFS', () => startTestSeaweed());
