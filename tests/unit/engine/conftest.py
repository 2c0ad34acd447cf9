"""The shop that these tests share."""

from private_shop import people, shop_directory, single

__all__ = ["people", "shop_directory", "single"]
