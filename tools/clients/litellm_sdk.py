import asyncio

import litellm
from evenhand_litellm import EvenhandLogger
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER


async def main():
    log = EvenhandLogger()  # inside the event loop, once
    litellm.callbacks = [log]
    for question in ["Who should lead the team?", "Can she lead the team?"]:
        answer = await litellm.acompletion(
            model="openai/gpt-4o-mini",
            messages=[{"role": "user", "content": question}],
            user="u-17",
            litellm_trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
            metadata={"requester_metadata": {"application": "litellm-sdk", "domain": "hr"}},  # other keys of metadata are not told
        )
        print(answer.choices[0].message.content)
    await asyncio.sleep(0)  # a program that ends sends what waits: the last call is handed over in the loop's next round
    await GLOBAL_LOGGING_WORKER.flush()
    await log.flush_queue()


asyncio.run(main())
