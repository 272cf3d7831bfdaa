"""Data to rank: LETOR files, and a simulated product search."""

from lambda_objectives.tools.grading import grades
from lambda_objectives.tools.letor import Letor, load_letor
from lambda_objectives.tools.simulator import ProductSearch, product_search, product_search_chunks

__all__ = ["Letor", "ProductSearch", "grades", "load_letor", "product_search", "product_search_chunks"]
