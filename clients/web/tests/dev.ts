import { Stage } from './browser/harness.ts';
import { tour } from './sample.ts';
const stage = await Stage.open();
const served = await stage.serve(tour());
const w = await served.open(process.argv[2] ?? '&s=tour', { colorScheme: 'light' });
await w.page.waitForTimeout(2500);
await w.page.screenshot({ path: '/tmp/page/l.png' });
console.log(w.page.url(), w.errors, w.requests);
await stage.close();
