"""The vendors that Hermes knows, a row each. Any other is `custom`, with a base URL."""

from hermes.llm.vendor import Quirks, Vendor

_LOCAL = Quirks(effort="none", reads_tags=True)

VENDORS = (
    Vendor(
        "openrouter", "chat", "https://openrouter.ai/api/v1", "many vendors behind one key", key="openrouter_key",
        url="openrouter_url", model="anthropic/claude-sonnet-5.5",
        quirks=Quirks(returns="reasoning_details", effort="reasoning", caches=True, reads_tags=True),
    ),
    Vendor(
        "anthropic", "anthropic", "https://api.anthropic.com", "Claude", key="anthropic_key", url="anthropic_url",
        model="claude-sonnet-5-5", quirks=Quirks(caches=True),
    ),
    Vendor(
        "openai", "chat", "https://api.openai.com/v1", "GPT", key="openai_key", url="openai_url", model="gpt-5.4-mini",
        quirks=Quirks(limit="max_completion_tokens"),
    ),
    Vendor(
        "nous", "chat", "https://inference-api.nousresearch.com/v1", "Hermes models of Nous Research", key="nous_key",
        url="nous_url", model="Hermes-4-405B", quirks=_LOCAL,
    ),
    Vendor(
        "deepseek", "chat", "https://api.deepseek.com", "DeepSeek", key="deepseek_key", url="deepseek_url",
        model="deepseek-v4-flash", quirks=Quirks(returns="reasoning_content", schema="json_object"),
    ),
    Vendor(
        "ollama", "chat", "http://127.0.0.1:11434/v1", "Ollama on this machine", url="ollama_url", needs_key=False,
        is_local=True, quirks=_LOCAL,
    ),
    Vendor(
        "lmstudio", "chat", "http://127.0.0.1:1234/v1", "LM Studio on this machine", url="lmstudio_url",
        needs_key=False, is_local=True, quirks=_LOCAL,
    ),
    Vendor(
        "vllm", "chat", "http://127.0.0.1:8000/v1", "vLLM", url="vllm_url", needs_key=False, is_local=True,
        quirks=_LOCAL,
    ),
    Vendor(
        "llamacpp", "chat", "http://127.0.0.1:8080/v1", "the server of llama.cpp", url="llamacpp_url", needs_key=False,
        is_local=True, quirks=_LOCAL,
    ),
    Vendor(
        "local", "local", "", "the small embedded model: no key, no network", model="qwen2.5-coder-1.5b",
        needs_key=False, is_local=True, is_small=True,
    ),
    Vendor(
        "custom", "chat", "", "any server that speaks chat completions, at model.base_url", needs_key=False,
        quirks=Quirks(reads_tags=True),
    ),
    Vendor(
        "custom-anthropic", "anthropic", "", "any server that speaks Anthropic's messages, at model.base_url",
        needs_key=False, quirks=Quirks(caches=False),
    ),
)  # fmt: skip

ALIASES = {
    "lm-studio": "lmstudio",
    "llama.cpp": "llamacpp",
    "llama-cpp": "llamacpp",
    "claude": "anthropic",
    "openai-compatible": "custom",
}


def vendor(name: str) -> Vendor | None:
    """Return the vendor of a name, in any case and by its other names."""
    wanted = ALIASES.get(name.lower(), name.lower())
    return next((one for one in VENDORS if one.name == wanted), None)
