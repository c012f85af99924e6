// SPDX-License-Identifier: MIT
//
// ONNX Runtime in node: three runs of a model, one thread each. Usage: node model.js PACKAGE MODEL [off: no arena]
const ort = require(process.argv[2]);

async function main() {
    const session = await ort.InferenceSession.create(process.argv[3], {
        intraOpNumThreads: 1, interOpNumThreads: 1, enableCpuMemArena: process.argv[4] !== 'off'});
    const feeds = {};
    for (const input of session.inputMetadata) {
        const extents = input.shape.map(x => typeof x === 'number' && x > 0 ? x : 1);
        const n = extents.reduce((a, b) => a * b, 1);
        feeds[input.name] = new ort.Tensor(input.type, new Float32Array(n).fill(0.5), extents);
    }
    for (let i = 0; i < 3; i++) await session.run(feeds);
    console.log('done');
}
main();
