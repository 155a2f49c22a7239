"""A play that waits for a person, without holding a worker while it waits.

counterfoil worker examples/approval.py
counterfoil launch --play publish --input examples/articles.csv --batch first
counterfoil resume first-2 approved --payload '{"by": "Ada"}'
"""

from counterfoil import AsyncRun, PermanentError, Worker

worker = Worker()


async def render(article: str) -> str:
    return f"<h1>{article}</h1>"


def publish(page: str) -> dict[str, int]:
    return {"bytes": len(page)}


@worker.play("publish")
async def play(run: AsyncRun, row: dict[str, str]) -> dict[str, object]:
    page = await run.step("render", render, row["title"])
    run.log("waits for approval", title=row["title"])
    try:
        approval = await run.wait_for("approved", timeout=7 * 24 * 3600)
    except TimeoutError:
        raise PermanentError("nobody approved within a week") from None
    await run.sleep(1)  # a grace second, in which `counterfoil cancel` still helps
    published = await run.step("publish", publish, page)
    return {"approved_by": approval["by"], **published}


if __name__ == "__main__":
    worker.run()
