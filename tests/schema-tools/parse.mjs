// Reads the OpenRPC document with OpenRPC's own parser, references put in place.

import { readFile } from 'node:fs/promises';
import { parseOpenRPCDocument } from '@open-rpc/schema-utils-js';

const text = await readFile(process.argv[2], 'utf8');
const document = await parseOpenRPCDocument(JSON.parse(text), { dereference: true });
// Fails with a circle. What OpenRPC does not know keeps its references: notifications.
const whole = JSON.stringify([document.methods, document.components]);
if (document.methods.length === 0) throw new Error('no methods');
if (/"\$ref":"#\/components/.test(whole)) throw new Error('a reference is left');
const silent = document.methods.filter(({ tags, examples }) => !tags?.[0]?.name || !examples?.[0]?.name);
if (silent.length > 0) throw new Error(`no tag or example: ${silent.map(({ name }) => name)}`);
