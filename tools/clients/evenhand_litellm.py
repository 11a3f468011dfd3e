import os

from litellm.integrations.generic_api.generic_api_callback import GenericAPILogger
from litellm.litellm_core_utils.safe_json_dumps import safe_dumps


class EvenhandLogger(GenericAPILogger):
    """generic_api without its losses: that one empties its queue behind each POST, with the calls that came meanwhile."""

    def __init__(self):
        super().__init__(
            endpoint=os.environ["EVENHAND_URL"] + "/v1/litellm",
            headers={"x-api-key": os.environ.get("EVENHAND_KEY", "")},  # empty: nobody is asked, on loopback
            max_retries=5,
        )

    async def flush_queue(self):
        async with self.flush_lock:
            batch, self.log_queue = self.log_queue, []
            try:
                if batch:
                    await self._post_with_retries(data=safe_dumps(batch))
            except Exception as error:
                if not self._should_retry_exception(error):
                    raise
                self.log_queue = (batch + self.log_queue)[-self.max_queue_size:]

    async_send_batch = flush_queue
